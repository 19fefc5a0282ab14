use crate::bed::Images;
use crate::scenes::{Exec, MAIN, Scene, World, op};

pub fn first_command(images: &Images) {
    let mut scene = Scene::blank(images);
    assert_eq!(scene.guest.hello.number("protocol"), 1);
    assert_eq!(scene.guest.hello.list("worlds")[0].get("state").text(), "prepared");
    assert_eq!(scene.run(&Exec::of(&["true"])).unwrap_err().code(), "world_not_open");
    scene.bed.mount(&images.layer, 0);
    let opened = scene.open_world(&MAIN).unwrap();
    println!("    world.open {} us inside", opened.number("elapsedUs"));
    assert_eq!(scene.run(&Exec::of(&["true"])).unwrap().code(), 0);
    assert_eq!(scene.run(&Exec::of(&["false"])).unwrap().code(), 1);
    assert_eq!(scene.sh("echo hello; cat /etc/motd"), "hello\nfrom the layer");
    assert_eq!(scene.open_world(&MAIN).unwrap_err().code(), "exists");
}
